# The job files that `dlrun init` writes are the examples, read at configure time into a source of
# the program: an installed program needs no files beside it.

# name | description | job file under examples/ | data files beside it
set(_dlrun_templates
  "mlp|a multi-layer perceptron that classifies images|fashion_mnist/mlp.yaml"
  "cnn|a small convolutional network that classifies images|fashion_mnist/cnn.yaml"
  "resnet|ResNet-18, for images that are worth its time|fashion_mnist/resnet18.yaml"
  "tabular|a small network that classifies the rows of a CSV file|tabular/iris.yaml|tabular/iris.csv")

# Appends the definition of `id`, the text of an example's file, to the variable `texts`.
function(_dlrun_embed texts id file)
  set(path ${PROJECT_SOURCE_DIR}/examples/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} content)
  set(${texts} "${${texts}}constexpr std::string_view ${id} = R\"~~~(${content})~~~\";\n" PARENT_SCOPE)
endfunction()

# dlrun_templates(OUTPUT): writes the source and puts its path into OUTPUT.
function(dlrun_templates output)
  set(TEMPLATE_TEXTS "")
  set(TEMPLATE_ENTRIES "")
  foreach(entry IN LISTS _dlrun_templates)
    string(REPLACE "|" ";" fields "${entry}")
    list(POP_FRONT fields name description job)
    _dlrun_embed(TEMPLATE_TEXTS ${name}_job ${job})
    list(LENGTH fields count)
    set(data "")
    foreach(file IN LISTS fields)
      get_filename_component(base ${file} NAME)
      string(MAKE_C_IDENTIFIER "${name}_${base}" id)
      _dlrun_embed(TEMPLATE_TEXTS ${id} ${file})
      string(APPEND data "template_file{\"${base}\", ${id}},")
    endforeach()
    string(APPEND TEMPLATE_TEXTS "constexpr std::array<template_file, ${count}> ${name}_data{${data}};\n")
    string(APPEND TEMPLATE_ENTRIES "\n    job_template{\"${name}\", \"${description}\", ${name}_job, ${name}_data},")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cli/templates.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/templates.cpp @ONLY)
  set(${output} ${CMAKE_CURRENT_BINARY_DIR}/templates.cpp PARENT_SCOPE)
endfunction()

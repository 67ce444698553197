"""Folders and models that are not what they should be."""

from bad_input_case import case


def train_only(commands):
    return [command for command in commands if command[0] == "train"]


@case("the folder of another run", "folder", "run", "dlrun resume", "--run-dir")
def _(at):
    at.file("run/spec.yaml", "name: x\n")
    at.file("run/run.record", "")
    return train_only(at.job(at.spec()))


@case("the folder of a run that did not come to begin", "folder", "run", "--or-resume", "--run-dir")
def _(at):
    at.file("run/spec.yaml", "name: x\n")
    return train_only(at.job(at.spec()))


@case("a run folder that is not empty", "folder", "run", "not empty", "--run-dir")
def _(at):
    at.file("run/precious", "mine")
    return train_only(at.job(at.spec()))


@case("a run folder that is a file", "folder", "run")
def _(at):
    at.file("run", "mine")
    return train_only(at.job(at.spec()))


@case("a run folder that may not be written", "folder", "run", "Permission denied", "--run-dir", as_nobody=True)
def _(at):
    at.run_dir.mkdir()
    at.run_dir.chmod(0o555)
    return train_only(at.job(at.spec()))


@case("a run folder in a folder that may not be written", "folder", "run", "Permission denied", "--run-dir", as_nobody=True)
def _(at):
    at.run_dir = at.folder / "locked/run"
    at.run_dir.parent.mkdir(mode=0o555)
    return train_only(at.job(at.spec()))


@case("a template in a folder that may not be written", "folder", "locked/job.yaml", "Permission denied", as_nobody=True)
def _(at):
    (at.folder / "locked").mkdir(mode=0o555)
    return [("init", "mlp", "locked/job.yaml")]


@case("a template in a folder that is not there", "folder", "nowhere")
def _(at):
    return [("init", "mlp", "nowhere/job.yaml")]


@case("a verb on what is no run folder", "folder", "is not the folder of a run")
def _(at):
    return [(verb, folder) for verb in ("attach", "status", "stop", "logs", "events", "explain", "export", "resume")
            for folder in (at.folder, at.folder / "nowhere")]


@case("a verb on the folder of a host that is not the root's", "folder", "is the folder of host beta", "root is on host alpha",
      "'/runs/iris'")
def _(at):
    (at.folder / "run.id").write_text('00000000000000ab\n{"host":"beta","root":"alpha","run_dir":"/runs/iris"}\n')
    words = {"drain": ["beta"], "scale": ["--workers", "2"]}
    return [(verb, at.folder, *words.get(verb, []))
            for verb in ("attach", "status", "stop", "logs", "events", "explain", "export", "resume", "drain", "scale", "token")]


@case("validation pictures whose classes are in another order", "spec", "job.yaml:", "data.validation.image_folder.classes[0]",
      "dog here", "cat in data.train", "leave image_folder.classes out", "or write the same")
def _(at):
    spec = at.spec()
    spec["data"] = {name: {"format": "image_folder", "records": "pictures", "image_folder": {"classes": classes}}
                    for name, classes in {"train": ["cat", "dog"], "validation": ["dog", "cat"]}.items()}
    return at.job(spec)


@case("a name that is no host's", "folder", "cannot be a host's", "letters, digits", "'dlrun status' names the hosts")
def _(at):
    return [("drain", at.folder, name) for name in ("\udcff", "be ta", "beta\n")]


@case("a verb that does not exist", "folder", "trian", 'did you mean "train"?')
def _(at):
    return [("trian", "job.yaml")]


@case("a model that is not there", "folder", "neither the folder of a run nor a weights file")
def _(at):
    return [("evaluate", "nowhere"), ("predict", "nowhere", "--input", "nowhere.csv")]

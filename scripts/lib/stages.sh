# Stages for ./quickstart and ./check: each is announced, timed, logged, and named when it fails. Source this file.

# Where the logs of the stages go.
stages_log_dir=build/logs

# How many compilers may run at once: one a core, and no more than memory allows (a file of actor code takes up to 1.5 GB).
build_jobs() {
  local cores memory_gb
  cores=$(nproc)
  memory_gb=$(awk '/^MemAvailable/ {print int($2 / 1048576 / 1.5)}' /proc/meminfo)
  ((memory_gb < 1)) && memory_gb=1
  echo $((cores < memory_gb ? cores : memory_gb))
}

format_seconds() { # milliseconds -> "12.3 s" or "3 min 05 s"
  if (($1 < 60000)); then
    printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100))
  else
    printf '%d min %02d s' $(($1 / 60000)) $(($1 / 1000 % 60))
  fi
}

now_ms() { date +%s%3N; }

# stage NAME "what it does" COMMAND...: runs the command with its output in a log.
# When it fails, shows the end of the log and returns its status.
stage() {
  local name=$1 what=$2 log status=0 begin
  shift 2
  mkdir -p "$stages_log_dir"
  log=$stages_log_dir/$name.log
  printf '%-16s %s ... ' "$name" "$what"
  begin=$(now_ms)
  "$@" </dev/null >"$log" 2>&1 || status=$?
  if ((status == 0)); then
    printf 'ok, %s\n' "$(format_seconds $(($(now_ms) - begin)))"
  else
    printf 'FAILED after %s\n' "$(format_seconds $(($(now_ms) - begin)))"
    show_failure "$log"
    echo "stage '$name' failed (exit status $status); the whole log: $log" >&2
  fi
  return "$status"
}

# What a reader needs of a failed stage's log: from the first failed build step on, else the end.
show_failure() {
  if grep -q '^FAILED: ' "$1"; then
    sed -n '/^FAILED: /,$p' "$1" | head -n 60 >&2
  else
    tail -n 80 "$1" >&2
  fi
}

# expect_room GB FOLDER...: whether the disk here has room for so much in these folders together, with what they hold now.
expect_room() {
  local gb=$1 free_mb held_mb=0 one
  shift
  free_mb=$(df --output=avail -BM . | tail -n 1 | tr -dc 0-9)
  for one in "$@"; do
    [[ ! -d $one ]] || held_mb=$((held_mb + $(du -sm "$one" | cut -f1)))
  done
  ((free_mb + held_mb < gb * 1024)) || return 0
  echo "no room: $gb GB are needed in $PWD ($*), where $((held_mb / 1024)) GB are used by it and $((free_mb / 1024)) GB are left:" \
    "make room, or build elsewhere" >&2
  return 1
}

# Configures and builds a preset. Further arguments are targets; none means all.
build_preset() {
  local preset=$1 target_options=()
  shift
  (($#)) && target_options=(--target "$@")
  cmake --preset "$preset" || return
  cmake --build --preset "$preset" --parallel "$(build_jobs)" "${target_options[@]}"
}

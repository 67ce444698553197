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

# fits GONE_MS PERCENT WITHIN_MINUTES: whether something that takes so many percent of the time that is gone ends in time.
fits() { (($1 + $1 * $2 / 100 <= $3 * 60000)); }

# Stages that run beside others: name -> process, and when it began.
declare -A stage_process stage_begun

# begin_stage NAME COMMAND...: the command runs, with its output in a log, while other things are done. `stage NAME` waits for it.
begin_stage() {
  local name=$1 log=$stages_log_dir/$1.log
  shift
  mkdir -p "$stages_log_dir"
  stage_begun[$name]=$(now_ms)
  set -m # a process group of its own, so that all of it can be ended
  (
    set +m
    status=0
    "$@" </dev/null >"$log" 2>&1 || status=$?
    now_ms >"$log.end"
    exit "$status"
  ) &
  set +m
  stage_process[$name]=$!
}

# Whether a process of this group runs (one that has ended and that nobody has waited for does not).
group_runs() {
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^.*) //' | awk -v group="$1" '$3 == group && $1 != "Z" {runs = 1} END {exit !runs}'
}

# Ends what begin_stage has begun and nobody has waited for, with all that it started: SIGTERM, and SIGKILL after 10 s.
end_stages() {
  local name group tries
  for name in "${!stage_process[@]}"; do
    group=${stage_process[$name]}
    kill -TERM -- "-$group" 2>/dev/null || true
    for ((tries = 0; tries < 200; ++tries)); do
      group_runs "$group" || break
      sleep 0.05
    done
    kill -KILL -- "-$group" 2>/dev/null || true
    wait "$group" 2>/dev/null || true
    unset "stage_process[$name]"
  done
}

# stage NAME "what it does" COMMAND...: runs the command with its output in a log, unless begin_stage has begun it.
# When it fails, shows the end of the log and returns its status.
stage() {
  local name=$1 what=$2 log=$stages_log_dir/$1.log status=0 begin end
  shift 2
  mkdir -p "$stages_log_dir"
  printf '%-16s %s ... ' "$name" "$what"
  if [[ ${stage_process[$name]:-} ]]; then
    begin=${stage_begun[$name]}
    wait "${stage_process[$name]}" || status=$?
    unset "stage_process[$name]"
    end=$(<"$log.end")
    rm "$log.end"
  else
    begin=$(now_ms)
    "$@" </dev/null >"$log" 2>&1 || status=$?
    end=$(now_ms)
  fi
  if ((status == 0)); then
    printf 'ok, %s\n' "$(format_seconds $((end - begin)))"
  else
    printf 'FAILED after %s\n' "$(format_seconds $((end - begin)))"
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

# What the scripts share.  Sourced, with the repository's root as the working directory after it.
set -euo pipefail
# Where the caller ignores Ctrl-C, as shells do for what they start in the background, the tests of it would hang.
[ -n "${STK_SIGNALS:-}" ] || STK_SIGNALS=1 exec env --default-signal=INT "$0" "$@"
shopt -s inherit_errexit # a failure inside $(...) is one
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
venv=$root/build/venv
python=$venv/bin/python
cache=${STOKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stoker}

say() { echo "${0##*/}: $*"; }
fail() { echo "${0##*/}: $*" >&2; exit 1; }

# The newest clang 14 or what there is.
find_clang() {
    command -v clang-14 || command -v clang || fail "no clang: scripts/setup test installs it"
}

# step NAME COMMAND...: runs it with its output in build/logs/NAME.log; shows one line, and its
# closing lines.  A failure ends the script with the log's end and how to run that step alone.
step() {
    local name=$1 start=$SECONDS code=0
    local log=build/logs/${0##*/}-$name.log
    shift
    [ -z "${ONLY:-}" ] || [ "$ONLY" = "$name" ] || return 0
    mkdir -p build/logs
    printf '%-24s' "$name"
    set +e # and no condition, inside which `set -e` would not hold; and not `&`, which ignores Ctrl-C
    (set -e; "$@") </dev/null >"$log" 2>&1
    code=$?
    set -e
    if [ $code != 0 ]; then
        printf 'FAILED after %d s\n' $((SECONDS - start))
        tail -n 200 "$log"
        fail "step '$name' failed; its log: $log; run it alone: ONLY=$name scripts/${0##*/}"
    fi
    printf '%4d s\n' $((SECONDS - start))
    closing_lines "$log"
}

# beside FUNCTION: runs its steps beside those that follow; join_beside shows what all of them printed,
# and ends the script if one failed.  Ctrl-C ends them too.
beside_pids=() beside_logs=()
beside() {
    local log=build/logs/${0##*/}-$1.log
    mkdir -p build/logs
    set -m # a group of its own, in which Ctrl-C is not ignored
    "$1" >"$log" 2>&1 </dev/null &
    beside_pids+=("$!") beside_logs+=("$log")
    set +m
    trap 'for pid in "${beside_pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done' EXIT
}
join_beside() {
    local i code=0
    for i in "${!beside_pids[@]}"; do
        wait "${beside_pids[i]}" || code=1
        cat "${beside_logs[i]}"
        unset "beside_pids[i]"
        [ $code = 0 ] || exit 1
    done
    trap - EXIT
}

# Lines that say how many tests ran, and the name of each that was skipped.
closing_lines() {
    grep -E '^SKIPPED |^=+ .*(passed|failed|skipped).* =+$|^[0-9]+ passed, [0-9]+ failed' "$1" || true
}

# steady COMMAND...: without address randomisation where it is wider than clang 14's sanitizers bear.
steady() {
    if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ] && setarch -R true 2>/dev/null; then
        setarch -R "$@"
    else
        "$@"
    fi
}

# configure FOLDER COMPILER OPTION...: a Meson build in build/FOLDER; the options of one that is there
# are updated.  MESON_PYTHON: the interpreter of the extension, if not that of build/venv.
configure() {
    local dir=build/$1 compiler=$2 python=${MESON_PYTHON:-$python}
    shift 2
    mkdir -p "$dir"
    printf '# Meson %s\n[binaries]\nc = %s\npython = %s\n' "$(${MESON:-meson} --version)" "'$compiler'" "'$python'" >"$dir.ini.next"
    if ! cmp -s "$dir.ini.next" "$dir.ini"; then
        mv "$dir.ini.next" "$dir.ini"
        rm -rf "$dir"
    fi
    rm -f "$dir.ini.next"
    if [ -f "$dir/build.ninja" ]; then
        ${MESON:-meson} configure "$dir" "$@"
    else
        ${MESON:-meson} setup "$dir" --native-file "$dir.ini" -Dwerror=true -Dfailpoints=true \
            -Dpython.platlibdir=/site -Dpython.purelibdir=/site "$@"
    fi
}

# meson_test FOLDER OPTION...: builds everything, and runs the C tests.
meson_test() {
    ninja -C "build/$1" all meson-test-prereq
    meson_run "$@" --no-rebuild
}

# meson_run FOLDER OPTION... [TEST...]: runs C tests, then one line with their number.
meson_run() {
    local dir=build/$1 code=0
    shift
    steady meson test -C "$dir" --print-errorlogs "$@" || code=$?
    awk '/^Ok:/ { ok = $2 } /^(Fail|Timeout|Unexpected Pass):/ { bad += $NF } /^Skipped:/ { skipped = $2 }
         / SKIP / && / [0-9.]+s/ { print "SKIPPED " $2 " " $3 " " $4 }
         END { printf "%d passed, %d failed, %d skipped\n", ok, bad, skipped }' "$dir/meson-logs/testlog.txt"
    return $code
}

# stage FOLDER: builds the Python package of build/FOLDER, installs it into build/FOLDER-site and
# prints the folder to import it from.
stage() {
    local parts # the extension, what it loads and what it starts
    mapfile -t parts < <(ninja -C "build/$1" -t targets all | sed -nE 's,^(python/([^:/]*\.so|stoker-decoder)):.*,\1,p')
    ninja -C "build/$1" "${parts[@]}" >&2
    rm -rf "build/$1-site"
    ${MESON:-meson} install -C "build/$1" --no-rebuild --quiet --destdir "$root/build/$1-site" --tags python-runtime >&2
    echo "$root/build/$1-site/site"
}

# run_pytest PATH...: in build/venv, warnings are errors, and what is skipped is named.
run_pytest() {
    "$python" -m pytest -W error -rs -p no:cacheprovider "$@"
}

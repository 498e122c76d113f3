# Source packages of later suites of this distribution.  Sourced by scripts that define say and fail, and
# read /etc/os-release.  The system's list of package sources is read, never changed.

# One line for each configured source, "URI [keyring]", from both formats that apt reads.
sources() {
    awk 'FNR == 1 || /^ *$/ { if (uri) print uri, key; uri = key = "" }
         /^URIs:/ { uri = $2 }
         /^Signed-By:/ { key = $2 }
         /^deb / { line = $0; found = match(line, /signed-by=[^] ]*/)
                   own = found ? substr(line, RSTART + 10, RLENGTH - 10) : ""
                   sub(/\[[^]]*\] */, "", line); split(line, word, " "); print word[2], own }
         END { if (uri) print uri, key }' \
        $(find /etc/apt/sources.list* -name '*.list' -o -name '*.sources' | sort)
}

# Sets the caller's uri and key to those of the mirror that apt uses for this distribution.
mirror() { read -r uri key < <(sources | grep -E "/$ID/?( |\$)" | head -n 1) || fail "apt has no source of $ID packages"; }

# unpack_pinned WORK PACKAGE FOLDER: unpacks the source into WORK/src from the first version that the mirror's
# pool has; false where it has none.  Reads lines "version SHA-256" of its .orig.tar.xz; FOLDER is the
# package's in the pool.
unpack_pinned() {
    local work=$1 package=$2 folder=$3 uri key full sum
    mirror
    mkdir -p "$work/src"
    while read -r full sum; do
        say "fetching the source of $package $full, a pinned version, from the pool"
        local file=${package}_$full.orig.tar.xz
        if /usr/lib/apt/apt-helper -q -o APT::Sandbox::User= download-file \
            "${uri%/}/pool/$folder/$file" "$work/$file" "SHA256:$sum" </dev/null >"$work/fetch.log" 2>&1; then
            tar -xf "$work/$file" -C "$work/src" --strip-components=1
            return
        fi
        grep -m 2 -E '^(E|W):' "$work/fetch.log" >&2 || true
    done
    say "the pool has no pinned source of $package"
    return 1
}

# unpack_source WORK PACKAGE SUITE COMPONENT: unpacks the source into WORK/src; false where the suite has none.
unpack_source() {
    local work=$1 package=$2 suite=$3 component=$4 uri key
    mirror
    mkdir -p "$work"/apt/{state/lists/partial,cache/archives/partial} "$work/src"
    echo "deb-src ${key:+[signed-by=$key]} $uri $suite $component" >"$work/apt/sources.list"
    local apt=(apt-get -q -o "Dir::State=$work/apt/state" -o "Dir::Cache=$work/apt/cache"
               -o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
               -o APT::Sandbox::User=)
    say "fetching the source of $package from suite $suite"
    (cd "$work" && "${apt[@]}" update && "${apt[@]}" source --download-only "$package") >"$work/fetch.log" 2>&1 ||
        { grep -m 2 -E '^(E|W):' "$work/fetch.log" >&2 || true; say "suite $suite hands out no source of $package"; return 1; }
    tar -xf "$work/${package}"_*.orig.tar.xz -C "$work/src" --strip-components=1
}

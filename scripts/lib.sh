# Shared by the scripts beside it; sourced, never run.

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Installs those of the named Debian packages that are missing, without what these only recommend: with Chromium that
# would be a hundred packages more, a printing system among them.
need_packages() {
    local missing=() package
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "this system has no apt: see to it yourself that these are installed, by whatever names: $*"
        return
    fi
    for package in "$@"; do
        if ! dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed; then
            missing+=("$package")
        fi
    done
    if [ ${#missing[@]} -eq 0 ]; then return; fi
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "install these as root first: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# Ends the script where Swift is missing or too old.
need_swift() {
    local advice='Swift 6.2 or newer is needed. Get it from https://www.swift.org/install/linux/ (or with swiftly: https://www.swift.org/swiftly/), put its usr/bin into PATH, and run this again.'
    command -v swift >/dev/null || fail "there is no Swift here. $advice"
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
    if [ -z "$version" ]; then fail "'swift --version' does not say its version. $advice"; fi
    if [ "${version%%.*}" -lt 6 ] || { [ "${version%%.*}" -eq 6 ] && [ "${version#*.}" -lt 2 ]; }; then
        fail "this is Swift $version. $advice"
    fi
}

# The system libraries that the package is built on.
build_packages=(libsqlite3-dev libssl-dev zlib1g-dev)

# How a release is built. Swift's libraries become part of the program: it runs on machines without Swift, and a request
# costs a few per cent less CPU time. All release builds are alike, as `swift build` begins from the start when options change.
release_options=(-c release --static-swift-stdlib)

# Runs a command that creates something; that it is there already is no failure.
unless_exists() {
    local said
    if said=$("$@" 2>&1); then
        say "$said"
    elif [[ $said != *'error: EXISTS'* ]]; then
        printf '%s\n' "$said" >&2
        exit 1
    fi
}

# 32 random bytes, in hexadecimal.
random_secret() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }

# Decides where `swift build` keeps what it makes; sets `build_folder`, and `build_options` for `swift build` and `test`.
#
# This is `.build`. With CI=true or ZONEKEEPER_BUILD_CACHE=1 it is a folder outside the clone, where the packages that
# we depend on stay built, because their sources keep their paths from clone to clone. Our own modules are compiled again
# in each clone. The list of dependencies, the compiler's version and the options make the folder's name. The folder
# belongs to one script until that ends; meanwhile other scripts build in `.build`. A folder that is not as the last
# complete build left it is built from the start. ZONEKEEPER_BUILD_CACHE=0 turns all this off.
choose_build_folder() {
    build_folder=$PWD/.build build_options=()
    local wanted=${ZONEKEEPER_BUILD_CACHE:-} home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    if [ -z "$wanted" ] && [ "${CI:-}" = true ]; then wanted=1; fi
    if [ "$wanted" = 1 ] && [ -n "$home" ] && command -v flock >/dev/null; then use_cache "$home/zonekeeper/build"; fi
    build_options=(--scratch-path "$build_folder" "${build_options[@]}")
}

# Makes a folder of the cache the build folder, if this script can have it.
use_cache() {
    local cache=$1 key
    # Nobody debugs what is built here, and a build without debug information takes less time. The index of names stays:
    # without it SwiftPM cannot link the tests.
    local lean=(-debug-info-format none)
    key=$({ swift --version 2>/dev/null && uname -sm && echo "${lean[@]}" && grep -F '.package(' Package.swift; } \
        | sha256sum | cut -c 1-16)
    if ! mkdir -p "$cache/$key" 2>/dev/null || ! { exec {build_lock}>"$cache/$key.lock"; } 2>/dev/null; then
        say "$cache cannot be written: building in .build"
    elif ! flock --nonblock "$build_lock"; then
        say "another script uses $cache/$key: building in .build"
    else
        build_folder=$cache/$key
        build_options=("${lean[@]}")
        if build_folder_is_whole; then
            cp "$build_folder/build.copy" "$build_folder/build.db"
        else
            say "$build_folder is empty or damaged: building from the start"
            rm -rf "$build_folder"
            mkdir "$build_folder"
        fi
        touch "$build_folder"
        remove_old_caches "$cache" "$key"
    fi
}

# Sums of what builds read and made in the build folder, without the plans and notes that change with every use. One of
# these, build.db, says what was built; `build` keeps a copy.
build_folder_sums() (
    cd "$build_folder"
    LC_ALL=C find . -type f ! -name '*.json' ! -name '*.yaml' ! -name 'build.db*' ! -name .lock ! -name 'sums*' \
        ! -path './repositories/*' -print0 | LC_ALL=C sort -z | xargs -0 -r cksum
)

# Whether a build ended here and left everything as it is now.
build_folder_is_whole() {
    [ -s "$build_folder/sums" ] && build_folder_sums | cmp -s - "$build_folder/sums"
}

# Runs `swift build` in the build folder.
build() {
    local status=0
    # Where the build is cut short there are no sums, and the next script begins from the start.
    rm -f "$build_folder/sums"
    swift build "${build_options[@]}" "$@" || status=$?
    if [ "$build_folder" != "$PWD/.build" ] && cp "$build_folder/build.db" "$build_folder/build.copy"; then
        build_folder_sums >"$build_folder/sums.new"
        mv "$build_folder/sums.new" "$build_folder/sums"
    fi
    return "$status"
}

# Removes all folders of the cache but one and the one used last before it, which a change of branches may want again.
remove_old_caches() (
    cd "$1"
    kept=0
    for old in $(ls -1t); do
        if [ "$old" = "$2" ] || [ ! -d "$old" ]; then continue; fi
        kept=$((kept + 1))
        if [ "$kept" -gt 1 ]; then flock --nonblock "$old.lock" rm -rf "$old" || true; fi
    done
)

# Shared by the scripts beside it; sourced, never run.

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Installs those of the named Debian packages that are missing.
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
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}"
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
build_packages=(libsqlite3-dev libssl-dev)

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

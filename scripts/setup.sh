#!/usr/bin/env bash
# Makes a Debian 12 machine ready to build, test and demonstrate Headrace. As root, or as a user who may use sudo. Only what is missing is
# installed, so a second run takes a moment. What it makes lies in build/: build/venv (Python packages), build/deps (API definitions, golden
# files) and build/peers (an emulator of BigQuery, 0.7 GB, whose tables the tests read).
# The package clients' own settings (proxies, mirrors, certificates) are respected.
set -euo pipefail
cd "$(dirname "$0")/.."

# Compilers and what the build, the tests and the demo call ...
packages=(g++ cmake ninja-build ccache mold pkg-config git python3 python3-venv unzip procps curl jq)
# ... the libraries that Headrace is made of (docs/architecture.md says what each is for) ...
packages+=(libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libre2-dev libcurl4-openssl-dev libssl-dev
           liblz4-dev libzstd-dev libsnappy-dev zlib1g-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libsimdjson-dev libcli11-dev
           libcpp-httplib-dev libtomlplusplus-dev)
# ... and those of the tests.
packages+=(libgtest-dev libgmock-dev libbenchmark-dev)
# Checks of scripts/test.sh which are skipped, and say so, where these are not to be had.
optional_packages=(clang-tidy-19 clang-format-19 clang-19 libclang-rt-19-dev zsh fish man-db)

google_protos=google-proto-files-6.0.1
google_protos_sha256=711763f77ea15bbc7436aac53db013b421d2c7b86ae27f4013723970ce54a96e

say() { printf 'setup: %s\n' "$*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
installed() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

install_packages() {
  local missing=() optional=() package
  for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
  # An npm of any origin will do; Debian's is a large package.
  command -v npm >/dev/null || missing+=(npm)
  for package in "${optional_packages[@]}"; do installed "$package" || optional+=("$package"); done
  if [ ${#missing[@]} = 0 ] && [ ${#optional[@]} = 0 ]; then
    say "Debian packages: all there"
    return
  fi
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  for package in "${optional[@]}"; do
    if [ -n "$(apt-cache policy "$package" | sed -n 's/^  Candidate: //p' | grep -v '(none)')" ]; then
      missing+=("$package")
    else
      say "no package $package here: the checks that need it will be skipped"
    fi
  done
  [ ${#missing[@]} = 0 ] && return
  say "installing Debian packages: ${missing[*]}"
  as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >build/setup-apt.log 2>&1 ||
    { tail -n 20 build/setup-apt.log >&2; say "apt-get failed; its output is in build/setup-apt.log"; exit 1; }
}

# once STAMP KEY COMMAND...: runs the command unless it ended well before with the same key.
once() {
  local stamp=build/deps/.$1 key
  key=$(printf '%s' "$2" | sha256sum | cut -c1-64)
  shift 2
  if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then return; fi
  "$@"
  printf '%s\n' "$key" >"$stamp"
}

make_venv() {
  say "making the Python environment build/venv"
  local python=/usr/bin/python3
  [ -x $python ] || python=python3
  $python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
    { say "Python 3.11 (Debian 12's) is needed: the pinned wheels are made for it"; exit 1; }
  $python -m venv build/venv
}

pip_install() { build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes "$@"; }
install_python_packages() {
  say "installing Python packages: Arrow C++ (the pyarrow wheel), the tests' and the demo's"
  pip_install --only-binary :all: -r scripts/requirements.txt -r scripts/requirements-test.txt
  pip_install --no-build-isolation --use-pep517 -r scripts/requirements-demo.txt
}

fetch_google_protos() {
  say "fetching the API definitions: npm package $google_protos"
  local work=build/deps/fetch
  rm -rf "$work" && mkdir -p "$work"
  (cd "$work" && npm pack --silent "google-proto-files@${google_protos##*-}" >/dev/null)
  local archive=$work/$google_protos.tgz
  echo "$google_protos_sha256  $archive" | sha256sum --check --quiet ||
    { say "the checksum of $archive is not the pinned one: nothing was unpacked"; exit 1; }
  tar -xzf "$archive" -C "$work"
  rm -rf "build/deps/$google_protos"
  mv "$work/package" "build/deps/$google_protos"
  rm -rf "$work"
}

fetch_golden_files() {
  say "fetching the golden files: the source archive of fastavro"
  local work=build/deps/fetch
  rm -rf "$work" && mkdir -p "$work"
  build/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --no-binary :all: --no-build-isolation \
    --dest "$work" -r scripts/requirements-golden.txt
  tar -xzf "$work"/fastavro-*.tar.gz -C "$work"
  rm -rf build/deps/avro-files
  mv "$work"/fastavro-*/tests/avro-files build/deps/avro-files
  rm -rf "$work"
}

. /etc/os-release
[ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ] || say "made for Debian 12, this is ${PRETTY_NAME:-another system}: package names may differ"
mkdir -p build/deps
install_packages
[ -x build/venv/bin/python ] || { rm -f build/deps/.python; make_venv; }
once python "$(cat scripts/requirements{-demo,-test,}.txt)" install_python_packages
[ -d "build/deps/$google_protos" ] || rm -f build/deps/.google-protos
once google-protos "$google_protos_sha256" fetch_google_protos
[ -d build/deps/avro-files ] || rm -f build/deps/.golden
once golden "$(cat scripts/requirements-golden.txt)" fetch_golden_files
# The emulator of the short run; the others are installed by `scripts/test.sh --all peers`.
tests/peers/install.sh bqemulator
say "ready"

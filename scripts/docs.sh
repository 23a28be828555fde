#!/usr/bin/env bash
# Makes a site of docs/ in build/site, with MkDocs in an environment of its own (build/docs-venv). A link that leads nowhere is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
python=/usr/bin/python3
[ -x $python ] || python=python3
$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "scripts/docs.sh: Python 3.11 (Debian 12's) is needed: the pinned wheels are made for it" >&2; exit 1; }
wanted=$(sha256sum scripts/requirements-docs.txt | cut -c1-64)
if [ "$(cat build/docs-venv/.made-of 2>/dev/null)" != "$wanted" ]; then
  echo "making the Python environment build/docs-venv"
  rm -rf build/docs-venv
  $python -m venv build/docs-venv
  build/docs-venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r scripts/requirements-docs.txt
  printf '%s\n' "$wanted" >build/docs-venv/.made-of
fi
# Not --quiet: with it --strict does not see the warnings.
build/docs-venv/bin/python -m mkdocs build --strict --config-file mkdocs.yml >build/docs.log 2>&1 || { cat build/docs.log >&2; exit 1; }
echo "the site: build/site/index.html"

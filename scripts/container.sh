#!/usr/bin/env bash
# Builds a static program and the container image with it, in DIRECTORY: root/ is the content of the image, and
# image.tar the image as an OCI archive, with the name localhost/floatgate. Runs a simulation in the image. Needs
# buildah, but no network.
#
# The program is linked to musl if rustup has that target, and otherwise to the static C library of the system.
#
#   container.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v buildah >/dev/null; then
    echo 'error: buildah is not installed; apt-get install -y buildah (as root, or with sudo)' >&2
    exit 1
fi
mkdir -p "$1"
directory=$(cd "$1" && pwd)
machine=$(uname -m)

libc=gnu
if command -v rustup >/dev/null && rustup target list --installed | grep -qx "$machine-unknown-linux-musl"; then
    libc=musl
fi
program=$(RUSTFLAGS='-C target-feature=+crt-static' scripts/pgo.sh --target "$machine-unknown-linux-$libc" | tail -n 1)

root=$directory/root
rm -rf "$root" "$directory/image.tar"
mkdir -p "$root/usr/bin" "$root/usr/share/doc/floatgate" "$root/work"
mkdir -m 1777 "$root/tmp"
strip -o "$root/usr/bin/floatgate" "$program"
cp LICENSE-APACHE LICENSE-MIT crates/report/assets/LICENSE-plotly CITATION.cff "$root/usr/share/doc/floatgate/"
scripts/shell_files.sh "$root/usr/bin/floatgate" "$root/usr/share"
if ldd "$root/usr/bin/floatgate" 2>&1 | grep '=>'; then
    echo "error: $root/usr/bin/floatgate needs shared libraries" >&2
    exit 1
fi

# Isolation and storage that work in most places, also within a container.
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}
buildah build --quiet --tag floatgate --file Containerfile "$directory" >/dev/null
container=$(buildah from localhost/floatgate)
trap 'buildah rm "$container" >/dev/null' EXIT
buildah run "$container" -- /usr/bin/floatgate --version
buildah run "$container" -- /usr/bin/floatgate run tiny 'rw=randread bs=4k number_ios=1k'
buildah push --quiet localhost/floatgate "oci-archive:$directory/image.tar:localhost/floatgate:latest"
ls -l "$root/usr/bin/floatgate" "$directory/image.tar"

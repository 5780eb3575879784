#!/usr/bin/busybox sh
# Loads the modules of a file system. The kernel calls this script with an alias, such as `-q -- fs-xfs`.
for word in "$@"; do
    case $word in
    -*) ;;
    *) name=${word#fs-} ;;
    esac
done
list=/floatgate/modules/fs-$name
[ -s "$list" ] || exit 1
for module in $(cat "$list"); do
    [ -d /sys/module/"$module" ] || insmod /floatgate/modules/"$module".ko || exit 1
done

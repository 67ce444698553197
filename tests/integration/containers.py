"""What a container runtime does with an image: it lays its root out, of which nothing but volumes can be written to, and runs a program
in it that has no rights."""

import pathlib
import shlex
import shutil

ENTRY = pathlib.Path(__file__).with_name("container_entry.py")
SHARED = ("lib64", "usr")  # by all that run an image: most of it is there, and no volume
OF_KERNEL = ("dev", "proc", "sys")
DEVICES = ("null", "zero", "full", "random", "urandom")


def copy_image(image, root):
    """Of an unpacked image, into an empty folder, all but what is shared."""
    for one in image.iterdir():
        if one.name in (*SHARED, *OF_KERNEL):
            (root / one.name).mkdir()
        else:
            shutil.copytree(one, root / one.name)


def laying_out(root, image, mounts, is_read_only=True):
    """Commands of a shell in a mount namespace of its own. @param root of copy_image(); mounts: (source, target, whether it can only be
    read)"""
    root = shlex.quote(str(root))
    yield f"mount --bind {root} {root}"
    for name in SHARED:
        yield f"mount --bind {shlex.quote(str(image / name))} {root}/{name} && mount -o remount,bind,ro {root}/{name}"
    yield f"mount --bind /sys {root}/sys"
    yield f"mount -t proc proc {root}/proc"
    yield f"mount -t tmpfs tmpfs {root}/dev"
    yield f"ln -s /proc/self/fd {root}/dev/fd"
    for source, target, is_for_readers in (*((pathlib.Path("/dev", name), f"/dev/{name}", False) for name in DEVICES), *mounts):
        at = root + shlex.quote(target)
        yield f"mkdir -p {at}" if source.is_dir() else f"mkdir -p $(dirname {at}) && touch {at}"
        yield f"mount --bind {shlex.quote(str(source))} {at}"
        if is_for_readers:
            yield f"mount -o remount,bind,ro {at}"
    if is_read_only:
        yield f"mount -o remount,bind,ro {root}"


def words_in(root, user, group, other_group, variables, words):
    """That run others in that root; see container_entry."""
    return ["/usr/bin/python3", "-B", str(ENTRY), *map(str, (root, user, group, other_group)),
            *(f"{name}={value}" for name, value in variables.items()), "--", *words]

"""Runs a program as the container of a pod does that has no rights: in a root of its own, as its user, with no capability that it could
have or get, and with no variable but those that are named.

container_entry.py ROOT USER GROUP OTHER_GROUP [NAME=VALUE...] -- PROGRAM [WORD...]
"""

import ctypes
import os
import sys

CAPABILITIES = 64  # as many as there can be
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38


def main(root, user, group, other_group, *rest):
    at = rest.index("--")
    variables, words = dict(one.split("=", 1) for one in rest[:at]), rest[at + 1:]
    control = ctypes.CDLL(None, use_errno=True).prctl
    os.chroot(root)
    os.chdir("/")
    for number in range(CAPABILITIES):
        control(PR_CAPBSET_DROP, number, 0, 0, 0)  # beyond the last there is an error
    os.setgroups([int(other_group)])
    os.setresgid(*[int(group)] * 3)
    os.setresuid(*[int(user)] * 3)
    if control(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    os.execve(words[0], words, variables)


if __name__ == "__main__":
    main(*sys.argv[1:])

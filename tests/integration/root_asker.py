"""USER: asks the actor of a job's root something again and again, as that user, in the folder of the run. Its lines: when it asked
(time.monotonic()), and how many ms later it had the answer. It ends with SIGTERM."""

import contextlib
import os
import socket
import sys
import time

PERIOD_S, ANSWER_S = 0.001, 30
QUESTION = b"drain -"  # of no host: it is refused by the actor that knows the hosts


def ask():
    begin = time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
        asker.settimeout(ANSWER_S)
        asker.connect("control.sock")
        asker.send(QUESTION)
        answer = asker.recv(1 << 16)
    end = time.monotonic()
    if b"there is no host -" not in answer:
        sys.exit(f"the root answers {answer!r}")
    print(f"{begin:.6f} {(end - begin) * 1000:.3f}", flush=True)


def main(user):
    with contextlib.suppress(PermissionError):  # what it measures is how late others are
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    while True:
        ask()
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main(int(sys.argv[1]))

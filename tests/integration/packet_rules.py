"""Rules of nftables, set by this process: a program for each of many would take its time."""

import ctypes

from net_hosts import no_namespaces

LIBRARY = "libnftables.so.1"  # of the package of the program nft


class packet_rules:
    def __init__(self):
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError as why:
            raise no_namespaces(f"network policies are enforced by nftables: {why}") from why
        self.library.nft_ctx_new.restype = ctypes.c_void_p
        self.library.nft_ctx_get_error_buffer.restype = ctypes.c_char_p

    def set(self, text):
        """Of the network namespace of the thread that calls, in one step, so that no packet comes between the rules of before and these.
        @param text in the language of the program nft"""
        context = ctypes.c_void_p(self.library.nft_ctx_new(0))
        try:
            self.library.nft_ctx_buffer_error(context)
            if self.library.nft_run_cmd_from_buffer(context, text.encode()) != 0:
                raise ValueError(f"{self.library.nft_ctx_get_error_buffer(context).decode()}\n{text}")
        finally:
            self.library.nft_ctx_free(context)

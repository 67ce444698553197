// A module that needs another library.
int dlrun_absent();

extern "C" int dlrun_needs_it() { return dlrun_absent(); }

// A library that a module needs, and that is not there any more when it is loaded.
int dlrun_absent() { return 1; }

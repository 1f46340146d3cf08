// The one source of the targets whose precompiled headers the others share.
int main() { return 0; }

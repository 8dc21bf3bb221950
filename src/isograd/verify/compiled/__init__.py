"""Stage compiled: is the port the same network under MindSpore's static graph?"""

#!/bin/sh
# Prints the programs that the peer needs in PATH, a line each.
echo redis-server

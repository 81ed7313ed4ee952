#!/bin/bash
# Adds areas up.
total() {
  echo $(($1 + $2))
}

small() {
  total 1 4
}

large() {
  total 64 81
}

small
large

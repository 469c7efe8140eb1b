//! The published tables of 2001 to 2003, embedded in the program.

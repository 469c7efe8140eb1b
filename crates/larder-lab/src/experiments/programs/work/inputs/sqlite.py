import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in open("work.sql"):
    for row in base.execute(line):
        print("|".join(map(str, row)))

// The console's files: one FILE and one #embed for each file below Web, in any order. It is read twice.
FILE("index.html")
#embed "Web/index.html" limit(BYTES_MAX)

import re, sys, zlib
state = 99
def draw():
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state
words = ["w%d" % (draw() % 5000) for _ in range(3000)]
answer = 0
for turn in range(int(sys.argv[1])):
    texts = []
    for i in range(60):
        at = draw() % 2000
        texts.append(" ".join(words[at:at + 300 + draw() % 700]))
    joined = "\n".join(texts)
    parts = [line.split(" ") for line in joined.split("\n")]
    found = re.findall(r"w(\d*7)\b", joined)
    upper = joined.upper().replace("W1", "first-").encode()
    packed = zlib.compress(upper, 1)
    buffers = [bytearray(packed) for _ in range(40)]
    answer = (answer * 31 + len(found) + sum(map(len, parts)) + len(zlib.decompress(packed)) + sum(b[turn % len(b)] for b in buffers)) % 1000000007
print(answer)

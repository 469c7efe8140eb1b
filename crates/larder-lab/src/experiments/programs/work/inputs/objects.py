import json, sys
class Node:
    def __init__(self, key, left, right):
        self.key, self.left, self.right = key, left, right
def tree(depth, key):
    if depth == 0:
        return None
    return Node(key, tree(depth - 1, 2 * key), tree(depth - 1, 2 * key + 1))
def total(node):
    return 0 if node is None else node.key % 97 + total(node.left) + total(node.right)
state = 12345
def draw():
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state
answer = 0
for turn in range(int(sys.argv[1])):
    table = {}
    for i in range(4000):
        key = "key-%d" % (draw() % 3000)
        table.setdefault(key, []).append((i, str(draw()), {"n": i, "half": i / 2}))
    text = json.dumps(table, sort_keys=True)
    again = json.loads(text)
    rows = sorted(again.items(), key=lambda kv: (len(kv[1]), kv[0]))
    answer = (answer * 31 + len(text) + len(rows) + total(tree(11, turn + 1))) % 1000000007
print(answer)

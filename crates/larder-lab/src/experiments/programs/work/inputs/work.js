// Objects, strings, maps and buffers, `scale` times.
const scale = Number(process.argv[2]);
let seed = 12345;
const draw = (n) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed % n;
};
let sum = 0;
for (let turn = 0; turn < scale; turn++) {
  const words = new Map();
  for (let i = 0; i < 20000; i++) {
    const word = "w" + draw(3000).toString(36);
    words.set(word, (words.get(word) || 0) + 1);
  }
  const sorted = [...words].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const text = JSON.stringify(sorted.map(([word, count]) => ({ word, count, tags: [word.length, count % 7] })));
  sum = (sum + JSON.parse(text).reduce((s, row) => s + row.count * row.tags[1], 0)) % 1000003;
  // The bytes of a buffer are not on the script's heap.
  let kept = [];
  for (let i = 0; i < 2000; i++) {
    const buffer = Buffer.alloc(16 + draw(40000), i & 255);
    kept[draw(50)] = buffer;
    sum = (sum + buffer[buffer.length - 1]) % 1000003;
  }
  const all = Buffer.concat(kept.filter(Boolean));
  sum = (sum + require("zlib").gunzipSync(require("zlib").gzipSync(all)).length) % 1000003;
}
console.log(sum);

<?php
// Arrays, objects, strings and patterns, as many times as the argument says.
$seed = 12345;
function draw($n) {
    global $seed;
    $seed = ($seed * 1103515245 + 12345) % 2147483648;
    return $seed % $n;
}
$sum = 0;
for ($turn = 0; $turn < (int) $argv[1]; $turn++) {
    $words = [];
    for ($i = 0; $i < 20000; $i++) {
        $word = 'w' . base_convert((string) draw(3000), 10, 36);
        $words[$word] = ($words[$word] ?? 0) + 1;
    }
    ksort($words);
    $rows = [];
    foreach ($words as $word => $count) {
        $row = new stdClass();
        $row->word = $word;
        $row->tags = [$count, strlen($word)];
        $rows[] = $row;
    }
    foreach ($rows as $i => $row) {
        $sum += $row->tags[0] * ($i % 7);
    }
    $text = implode('; ', array_map(fn($row) => $row->word . '=' . $row->tags[0], $rows));
    $sum += strlen(preg_replace_callback('/w(\w)\w*=(\d+)/', fn($m) => $m[2] . $m[1], $text));
    $kept = [];
    for ($i = 0; $i < 3000; $i++) {
        $kept[draw(200)] = str_repeat('x', 20 + draw(5000));
    }
    $sum += array_sum(array_map('strlen', $kept));
}
echo $sum, "\n";

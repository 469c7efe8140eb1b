# Hashes, arrays, strings and patterns, as many times as the argument says.
seed = 12345
draw = lambda do |n|
  seed = (seed * 1103515245 + 12345) % 2147483648
  seed % n
end
sum = 0
ARGV[0].to_i.times do
  words = Hash.new(0)
  20_000.times { words["w#{draw.call(3000).to_s(36)}"] += 1 }
  rows = words.sort_by { |word, count| [-count, word] }.map { |word, count| { word: word, count: count } }
  sum += rows.each_with_index.sum { |row, i| row[:count] * (i % 7) }
  text = rows.map { |row| "#{row[:word]}=#{row[:count]}; " }.join
  sum += text.gsub(/w(\w)\w*=(\d+)/) { "#{$2}#{$1}" }.length
  kept = []
  3000.times { kept[draw.call(200)] = "x" * (20 + draw.call(5000)) }
  sum += kept.compact.sum(&:length)
end
puts sum

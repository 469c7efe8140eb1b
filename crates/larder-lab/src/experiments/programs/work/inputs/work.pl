use strict; use warnings;
my $state = 7;
sub draw { $state = ($state * 1103515245 + 12345) % 2147483648; return $state; }
my $answer = 0;
for my $turn (1 .. $ARGV[0]) {
    my (%count, @rows);
    for my $i (1 .. 12000) {
        my $word = "word" . draw() % 2500;
        $count{$word}++;
        push @rows, [$i, $word, { n => $i, t => "text $word" x (1 + $i % 4) }] if $i % 3 == 0;
    }
    my @sorted = sort { $a->[1] cmp $b->[1] || $a->[0] <=> $b->[0] } @rows;
    my $text = join " ", map { "$_->[1]:$_->[2]{t}" } @sorted;
    (my $changed = $text) =~ s/word(\d)/<$1>/g;
    my @parts = split / /, $changed;
    $answer = ($answer * 31 + scalar(keys %count) + length($changed) + scalar(@parts)) % 1000000007;
}
print "$answer\n";

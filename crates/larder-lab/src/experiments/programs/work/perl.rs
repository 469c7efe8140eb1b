//! Perl: hashes, arrays of arrays, sorting and patterns.

use super::super::process::Step;
use super::super::shop::tool;
use super::{Program, commands, nothing};

pub(super) const PERL: Program = Program {
    name: "perl",
    about: "perl: words counted in hashes, arrays of arrays sorted, patterns replaced in texts",
    tools: &["perl"],
    lacks: nothing,
    scale: 12,
    quick: true,
    run: |shop, malloc| {
        let file = shop.write("work.pl", SCRIPT)?;
        let words = [&*file.to_string_lossy(), &shop.scale.to_string()];
        let step = Step::new(tool("perl")?, &words).with("PERL_HASH_SEED", "0");
        commands(shop, malloc, &[step])
    },
};

const SCRIPT: &str = r#"
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
"#;

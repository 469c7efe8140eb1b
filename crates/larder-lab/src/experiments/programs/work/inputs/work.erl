%% Processes, maps, lists and binaries.
-module(work).
-export([main/1]).

draw(Seed, N) ->
    Next = (Seed * 69069 + 1) rem 2147483648,
    {Next rem N, Next}.

words(0, _, Words) -> Words;
words(N, Seed, Words) ->
    {Word, Next} = draw(Seed, 3000),
    words(N - 1, Next, maps:update_with(integer_to_list(Word, 36), fun(C) -> C + 1 end, 1, Words)).

binaries(0, _, Sum) -> Sum;
binaries(N, Seed, Sum) ->
    {Size, Next} = draw(Seed, 40000),
    Binary = binary:copy(<<N:8>>, Size + 100),
    binaries(N - 1, Next, Sum + byte_size(Binary) + binary:last(Binary)).

once(Turn) ->
    Words = lists:sort(maps:to_list(words(20000, Turn, #{}))),
    Text = term_to_binary(Words),
    lists:sum([Count || {_, Count} <- binary_to_term(Text)]) + erlang:crc32(Text) rem 1000 + binaries(3000, Turn, 0).

main(Scale) ->
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), once(Turn)} end) || Turn <- lists:seq(1, Scale)],
    io:format("~p~n", [lists:sum([receive {Pid, Sum} -> Sum end || Pid <- Pids])]).

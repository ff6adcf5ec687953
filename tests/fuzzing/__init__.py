"""
A structure-aware fuzzer of documents: every command of the program over damaged input, in process.

    doors       the commands, each with the files that it reads
    seeds       valid files to begin with
    vocabulary  values by field name, and values of the types that `wire` declares
    mutations   damage to a document as plain values
    spelling    a document as JSON, YAML or a dump, and damage to the text
    running     one run of the program, and what must be true of every run
    shrinking   the smallest files that still fail
    cases       all of these for one number
    campaign    many runs, in worker processes; `python -m fuzzing` is its command line

Case number N of a seed is the same in every process, however many cases ran before it.
"""

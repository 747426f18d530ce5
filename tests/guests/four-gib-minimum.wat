;; Wants all that an address can reach, before it runs.
(memory $memory 65536)

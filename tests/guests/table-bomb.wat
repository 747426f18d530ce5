;; Has a table of ten million elements.
(table 10000000 funcref)

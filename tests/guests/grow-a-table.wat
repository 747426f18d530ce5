;; Makes its table grow until it cannot, and gives up then.
(table $table 1 funcref)
(func $call (result i32)
  (loop $again (br_if $again (i32.ne (table.grow $table (ref.null func) (i32.const 10000)) (i32.const -1))))
  unreachable)

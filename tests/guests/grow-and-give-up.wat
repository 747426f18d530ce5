;; Takes memory until it gets no more, and gives up then, as the allocators of most languages do.
(func $call (result i32)
  (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  unreachable)

;; Imports what no host has.
(func $call (result i32)
  (call $this.ask)
  (call $text @"asked"))

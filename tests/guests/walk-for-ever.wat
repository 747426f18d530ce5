;; Walks through the workspace again and again.
(func $call (result i32)
  (local $walk i32) (local $heap i32)
  (local.set $heap (global.get $heap))
  (loop $again
    (call $workspace.open-walk @"" (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (global.get $ret))
    (local.set $walk (i32.load offset=4 (global.get $ret)))
    (loop $next
      (global.set $heap (local.get $heap))
      (call $workspace.next-entries (local.get $walk) (i32.const 4096) (global.get $ret))
      (br_if $next (i32.load offset=8 (global.get $ret))))
    (call $workspace.drop-walk (local.get $walk))
    (br $again))
  unreachable)

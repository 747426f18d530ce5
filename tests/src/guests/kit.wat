  ;; What every guest has unless it defines it itself. Each part begins with a line `;;; NAME`, and is left out if the
  ;; guest has a function (or a memory) of that name.

;;; $memory
  (memory $memory {{pages}})

;;; $realloc
  ;; Hands out memory and never takes any back.
  (func $realloc (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.sub (local.get $align) (i32.const 1))) (i32.sub (i32.const 0) (local.get $align))))
    (if (i32.lt_u (i32.add (local.get $at) (local.get $size)) (local.get $at)) (then unreachable))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then
        (if (i32.eq
              (memory.grow (i32.add (i32.const 1) (i32.div_u (i32.sub (global.get $heap) (i32.mul (memory.size) (i32.const 65536))) (i32.const 65536))))
              (i32.const -1))
          (then unreachable))))
    (if (local.get $old-size) (then (memory.copy (local.get $at) (local.get $old) (local.get $old-size))))
    (local.get $at))

;;; $list-tools
  (func $list-tools (result i32) (i32.const {{tools}}))

;;; $call-tool
  (func $call-tool (param i32 i32 i32 i32) (result i32)
    (global.set $name (local.get 0))
    (global.set $name-len (local.get 1))
    (global.set $input (local.get 2))
    (global.set $input-len (local.get 3))
    (call $call))

;;; $call
  (func $call (result i32) (call $text @"done"))

;;; always
  (export "memory" (memory $memory))
  (export "cabi_realloc" (func $realloc))
  (export "cofferdam:plugin/tools@{{version}}#list-tools" (func $list-tools))
  (export "cofferdam:plugin/tools@{{version}}#call-tool" (func $call-tool))

  (global $heap (mut i32) (i32.const {{heap}}))
  ;; The call.
  (global $name (mut i32) (i32.const 0))
  (global $name-len (mut i32) (i32.const 0))
  (global $input (mut i32) (i32.const 0))
  (global $input-len (mut i32) (i32.const 0))
  ;; Where imports may put their results: 512 bytes that nothing else uses.
  (global $ret i32 (i32.const 1024))
  ;; 64 KiB for what the guest says bit by bit.
  (global $said i32 (i32.const {{said}}))
  (global $said-len (mut i32) (i32.const 0))

  ;; A piece of content, 40 bytes: its media type, whether its body is text (0) or bytes (1), and the body.
  (func $put-content (param $to i32) (param $type i32) (param $type-len i32) (param $kind i32) (param $at i32) (param $len i32)
    (memory.fill (local.get $to) (i32.const 0) (i32.const 40))
    (i32.store (local.get $to) (local.get $type))
    (i32.store offset=4 (local.get $to) (local.get $type-len))
    (i32.store offset=8 (local.get $to) (local.get $kind))
    (i32.store offset=12 (local.get $to) (local.get $at))
    (i32.store offset=16 (local.get $to) (local.get $len)))
  ;; `ok` with one piece of content, which is at 160.
  (func $content (param $type i32) (param $type-len i32) (param $kind i32) (param $at i32) (param $len i32) (result i32)
    (call $put-content (i32.const 160) (local.get $type) (local.get $type-len) (local.get $kind) (local.get $at) (local.get $len))
    (call $contents (i32.const 160) (i32.const 1)))
  ;; `ok` with a list of content, an output of 76 bytes at 68.
  (func $contents (param $list i32) (param $len i32) (result i32)
    (memory.fill (i32.const 64) (i32.const 0) (i32.const 80))
    (i32.store (i32.const 68) (local.get $list))
    (i32.store (i32.const 72) (local.get $len))
    (i32.const 64))
  (func $text (param i32 i32) (result i32) (call $content @"text/plain" (i32.const 0) (local.get 0) (local.get 1)))
  (func $json (param i32 i32) (result i32) (call $content @"application/json" (i32.const 0) (local.get 0) (local.get 1)))
  (func $bytes (param i32 i32 i32 i32) (result i32)
    (call $content (local.get 0) (local.get 1) (i32.const 1) (local.get 2) (local.get 3)))
  ;; Adds a view to the output: its media type, 0 for text or 1 for bytes, and its body.
  (func $view (param i32 i32 i32 i32 i32)
    (i32.store8 (i32.const 88) (i32.const 1))
    (call $put-content (i32.const 92) (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)))
  ;; Adds a structured result to the output.
  (func $structured (param i32 i32)
    (i32.store8 (i32.const 76) (i32.const 1))
    (i32.store (i32.const 80) (local.get 0))
    (i32.store (i32.const 84) (local.get 1)))
  ;; Adds an address to the one piece of content.
  (func $uri (param i32 i32)
    (i32.store8 (i32.const 180) (i32.const 1))
    (i32.store (i32.const 184) (local.get 0))
    (i32.store (i32.const 188) (local.get 1)))

  ;; `error`.
  (func $error (param $kind i32) (param $at i32) (param $len i32) (result i32)
    (i32.store (i32.const 64) (i32.const 1))
    (i32.store (i32.const 68) (local.get $kind))
    (i32.store (i32.const 72) (local.get $at))
    (i32.store (i32.const 76) (local.get $len))
    (i32.const 64))
  (func $not-found (param i32 i32) (result i32) (call $error (i32.const 1) (local.get 0) (local.get 1)))
  (func $timed-out (param i32 i32) (result i32) (call $error (i32.const 3) (local.get 0) (local.get 1)))
  (func $failed (param i32 i32) (result i32) (call $error (i32.const 4) (local.get 0) (local.get 1)))
  (func $invalid-input (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 80) (local.get 2))
    (i32.store (i32.const 84) (local.get 3))
    (call $error (i32.const 0) (local.get 0) (local.get 1)))
  (func $denied (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 80) (local.get 2))
    (i32.store (i32.const 84) (local.get 3))
    (i32.store (i32.const 88) (i32.const 0))
    (call $error (i32.const 2) (local.get 0) (local.get 1)))

  ;; Saying things bit by bit, and answering with them.
  (func $say (param $at i32) (param $len i32)
    (if (i32.gt_u (i32.add (global.get $said-len) (local.get $len)) (i32.const 65536)) (then unreachable))
    (memory.copy (i32.add (global.get $said) (global.get $said-len)) (local.get $at) (local.get $len))
    (global.set $said-len (i32.add (global.get $said-len) (local.get $len))))
  (func $say-number (param $n i32)
    (if (i32.ge_u (local.get $n) (i32.const 10)) (then (call $say-number (i32.div_u (local.get $n) (i32.const 10)))))
    (i32.store8 (i32.const 512) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
    (call $say (i32.const 512) (i32.const 1)))
  (func $say-pair (param $at i32)
    (call $say (i32.load (local.get $at)) (i32.load offset=4 (local.get $at))))
  (func $answer (result i32) (call $text (global.get $said) (global.get $said-len)))

  ;; Says `ok` or `error N` of a result with an enum as its error, and whose `error` is a byte at 4 or, without a value, at 1.
  (func $say-result (param $ret i32)
    (if (i32.load8_u (local.get $ret))
      (then (call $say @"error ") (call $say-number (i32.load8_u offset=4 (local.get $ret))))
      (else (call $say @"ok"))))
  (func $say-done (param $ret i32)
    (if (i32.load8_u (local.get $ret))
      (then (call $say @"error ") (call $say-number (i32.load8_u offset=1 (local.get $ret))))
      (else (call $say @"ok"))))

  ;; Whether this is the name of the called tool.
  (func $is-called (param $at i32) (param $len i32) (result i32)
    (local $i i32)
    (if (i32.ne (local.get $len) (global.get $name-len)) (then (return (i32.const 0))))
    (loop $next
      (if (i32.eq (local.get $i) (local.get $len)) (then (return (i32.const 1))))
      (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $i))) (i32.load8_u (i32.add (global.get $name) (local.get $i))))
        (then (return (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))
    unreachable)

  ;; The one text of an input such as `{"path":"TEXT"}`, as it stands there.
  (func $argument (result i32 i32)
    (local $at i32) (local $end i32) (local $quotes i32)
    (local.set $at (global.get $input))
    (loop $next
      (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 34)) (then (local.set $quotes (i32.add (local.get $quotes) (i32.const 1)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $quotes) (i32.const 3))))
    (local.set $end (i32.add (global.get $input) (global.get $input-len)))
    (loop $back
      (local.set $end (i32.sub (local.get $end) (i32.const 1)))
      (br_if $back (i32.ne (i32.load8_u (local.get $end)) (i32.const 34))))
    (local.get $at)
    (i32.sub (local.get $end) (local.get $at)))

  ;; Says how `commands.run` ended.
  (func $say-command (param $ret i32)
    (if (i32.load8_u (local.get $ret))
      (then
        (if (i32.eq (i32.load8_u offset=8 (local.get $ret)) (i32.const 0))
          (then
            (call $say @"denied ") (call $say-pair (i32.add (local.get $ret) (i32.const 12)))
            (call $say @": ") (call $say-pair (i32.add (local.get $ret) (i32.const 20))))
          (else
            (call $say @"refused: ") (call $say-pair (i32.add (local.get $ret) (i32.const 12))))))
      (else
        (call $say @"ending ") (call $say-number (i32.load8_u offset=8 (local.get $ret)))
        (call $say @" code ") (call $say-number (i32.load offset=12 (local.get $ret)))
        (call $say @": ") (call $say-pair (i32.add (local.get $ret) (i32.const 16)))
        (call $say-pair (i32.add (local.get $ret) (i32.const 24)))))
    (call $say @"\n"))

  ;; Says what a function of `workspace` has against it: the result's value begins at 4.
  (func $say-walk-error (param $ret i32)
    (if (i32.eq (i32.load8_u offset=4 (local.get $ret)) (i32.const 3))
      (then
        (call $say @"denied ") (call $say-pair (i32.add (local.get $ret) (i32.const 8)))
        (call $say @": ") (call $say-pair (i32.add (local.get $ret) (i32.const 16))))
      (else
        (call $say @"refused ") (call $say-number (i32.load8_u offset=4 (local.get $ret)))
        (call $say @": ") (call $say-pair (i32.add (local.get $ret) (i32.const 8)))))
    (call $say @"\n"))

  ;; Says what a function of `state`, `agents` or `plans` has against it: an error whose first case is a denial.
  (func $say-refusal (param $ret i32)
    (if (i32.eqz (i32.load8_u offset=4 (local.get $ret)))
      (then
        (call $say @"denied ") (call $say-pair (i32.add (local.get $ret) (i32.const 8)))
        (call $say @": ") (call $say-pair (i32.add (local.get $ret) (i32.const 16))))
      (else
        (call $say @"refused ") (call $say-number (i32.load8_u offset=4 (local.get $ret)))
        (call $say @": ") (call $say-pair (i32.add (local.get $ret) (i32.const 8)))))
    (call $say @"\n"))

;; Answers, and spins when it is told that the answer was taken.
(func $post-call-tool (param i32) (loop $again (br $again)))

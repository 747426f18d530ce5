//! Memory, tables, instances and stack.

use cofferdam::tools::PluginProvenance;
use cofferdam_tests::guests::{TestGuest, TestHost, TestHostBuilder, nested};

use crate::{ALLOCATIONS, assert_contains};

#[test]
fn r098_memory_ends_at_the_cap_for_a_guest_that_carries_on() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("grow-to-the-end"))
            .with_allocation(allocation)
            .build();
        let pages: u32 = test_host
            .call_ok("grow_to_the_end", "{}")
            .trim_end_matches(" pages")
            .parse()
            .expect("a number");
        assert!((900..=1024).contains(&pages), "{pages}");
        test_host.assert_healthy();
    }
}

#[test]
fn r098_memory_ends_at_the_cap_for_a_guest_that_gives_up() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("grow-and-give-up"))
            .with_allocation(allocation)
            .build();
        assert_contains(
            &test_host.call_error("grow_and_give_up", "{}"),
            "the tool was stopped: the call exceeded its memory limit of 64 MiB",
        );
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_guest_that_wants_four_gibibytes_to_begin_with_is_not_offered() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("four-gib-minimum"))
            .with_allocation(allocation)
            .build();
        assert_contains(test_host.refusal_reason(), "the call exceeded its memory limit of 64 MiB");
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_guest_with_many_memories_is_not_offered() {
    let memories: String = (0..90).map(|n| format!("(memory $m{n} 1)\n")).collect();
    for allocation in ALLOCATIONS {
        let guest =
            TestGuest::from_file("many-memories").with_replacement("{{memories}}", &memories);
        let test_host =
            TestHostBuilder::default().with_guest(&guest).with_allocation(allocation).build();
        assert_contains(test_host.refusal_reason(), "memor");
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_table_bomb_is_not_offered() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("table-bomb"))
            .with_allocation(allocation)
            .build();
        assert_contains(test_host.refusal_reason(), "table");
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_table_ends_at_the_cap() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("grow-a-table"))
            .with_allocation(allocation)
            .build();
        assert_contains(
            &test_host.call_error("grow_a_table", "{}"),
            "the call exceeded the limit of 100000 table elements",
        );
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_component_of_many_instances_is_not_offered() {
    let instances: String =
        (0..2000).map(|n| format!("(core instance $i{n} (instantiate $m))\n")).collect();
    let before = format!("(core module $m)\n{instances}");
    let component = nested::wrap_component(
        &TestGuest::from_file("good")
            .with_tools([cofferdam_tests::guests::GuestTool::new("other")])
            .component(),
        &before,
    );
    for allocation in ALLOCATIONS {
        let plan = TestHostBuilder::default()
            .with_component(PluginProvenance::File("many.wasm".into()), component.clone())
            .with_allocation(allocation);
        let test_host = plan.build();
        assert_contains(test_host.refusal_reason(), "instances");
        test_host.assert_healthy();
    }
}

#[test]
fn r105_a_stack_overflow_ends_the_call_and_nothing_else() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("deep-recursion"))
            .with_allocation(allocation)
            .build();
        for _ in 0..3 {
            assert_contains(
                &test_host.call_error("deep_recursion", "{}"),
                "the tool crashed: stack overflow",
            );
            test_host.assert_healthy();
        }
    }
}

#[test]
fn r105_a_guest_cannot_call_the_host_from_within_its_allocator() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("re-entry"));
    let text = test_host.call_error("re_entry", "{}");
    assert_contains(&text, "cannot leave component instance");
    test_host.assert_healthy();
}

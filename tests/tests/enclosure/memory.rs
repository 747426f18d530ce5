//! Memory, tables, instances and stack.

use cofferdam::tools::Origin;
use cofferdam_tests::guests::{Guest, House, Plan, nested};

use crate::{ALLOCATIONS, assert_says};

#[test]
fn r098_memory_ends_at_the_cap_for_a_guest_that_carries_on() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("grow-to-the-end")).allocation(allocation).build();
        let pages: u32 = house.answers("grow_to_the_end", "{}").trim_end_matches(" pages").parse().expect("a number");
        assert!((900..=1024).contains(&pages), "{pages}");
        house.assert_is_fine();
    }
}

#[test]
fn r098_memory_ends_at_the_cap_for_a_guest_that_gives_up() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("grow-and-give-up")).allocation(allocation).build();
        assert_says(&house.fails("grow_and_give_up", "{}"), "the tool was stopped: it needs more than its 64 MiB of memory");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_guest_that_wants_four_gibibytes_to_begin_with_is_not_offered() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("four-gib-minimum")).allocation(allocation).build();
        assert_says(house.refusal(), "it needs more than its 64 MiB of memory");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_guest_with_many_memories_is_not_offered() {
    let memories: String = (0..90).map(|n| format!("(memory $m{n} 1)\n")).collect();
    for allocation in ALLOCATIONS {
        let guest = Guest::named("many-memories").with("{{memories}}", &memories);
        let house = Plan::default().guest(&guest).allocation(allocation).build();
        assert_says(house.refusal(), "memor");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_table_bomb_is_not_offered() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("table-bomb")).allocation(allocation).build();
        assert_says(house.refusal(), "table");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_table_ends_at_the_cap() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("grow-a-table")).allocation(allocation).build();
        assert_says(&house.fails("grow_a_table", "{}"), "it needs a table of more than 100000 elements");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_component_of_many_instances_is_not_offered() {
    let instances: String = (0..2000).map(|n| format!("(core instance $i{n} (instantiate $m))\n")).collect();
    let before = format!("(core module $m)\n{instances}");
    let component = nested::around(&Guest::named("good").tools([cofferdam_tests::guests::Tool::named("other")]).component(), &before);
    for allocation in ALLOCATIONS {
        let plan = Plan::default().component(Origin::File("many.wasm".into()), component.clone()).allocation(allocation);
        let house = plan.build();
        assert_says(house.refusal(), "instances");
        house.assert_is_fine();
    }
}

#[test]
fn r105_a_stack_overflow_ends_the_call_and_nothing_else() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("deep-recursion")).allocation(allocation).build();
        for _ in 0..3 {
            assert_says(&house.fails("deep_recursion", "{}"), "the tool crashed: its stack overflowed");
            house.assert_is_fine();
        }
    }
}

#[test]
fn r105_a_guest_cannot_call_the_host_from_within_its_allocator() {
    let house = House::with(&Guest::named("re-entry"));
    let text = house.fails("re_entry", "{}");
    assert_says(&text, "cannot leave component instance");
    house.assert_is_fine();
}

//! Each of the first calls fails: the session is told, or the instance stops itself and says so; nothing acknowledged is lost.

use crate::shape::Shape;
use crate::world::{Life, World};
use crate::{attempt, each};
use io::sim::{Call, Fault, Trouble};
use std::sync::Mutex;

/// Steps after which a fault that has not struck will not.
const STEPS: u32 = 250;
const CALM: Life = Life { cut_one_in: usize::MAX, recovery_cut_one_in: usize::MAX, kill_one_in: 5 };
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What fails, how, once or from then on.
const TROUBLES: [(&str, Call, Trouble, bool); 6] = [
    ("EIO", Call::Any, Trouble::Errno(EIO), false),
    ("EIO for ever", Call::Any, Trouble::Errno(EIO), true),
    ("ENOSPC of a write", Call::Write, Trouble::Errno(ENOSPC), false),
    ("ENOSPC for names", Call::Name, Trouble::Errno(ENOSPC), false),
    ("a short transfer", Call::Any, Trouble::Short(512), false),
    ("a short write", Call::Write, Trouble::Short(1024), false),
];

#[derive(Clone, Copy, Default)]
struct Tally {
    struck: u64,
    not_opened: u64,
    told: u64,
    stopped: u64,
    wrong: u64,
}

/// Whether everything went well.
pub fn run(shapes: &[Shape], calls: &[u64]) -> bool {
    let mut sound = true;
    for (words, on, trouble, for_ever) in TROUBLES {
        let tally = Mutex::new(Tally::default());
        each(0..calls.len() as u64, |index| {
            let nth = calls[index as usize];
            let shape = &shapes[(nth % shapes.len() as u64) as usize];
            let fault = Fault { on, nth, for_ever, trouble };
            // Another seed for each, so that other calls have the number.
            let mut world = World::over(shape.storage(), CALM, nth);
            let result = attempt(|| world.suffer(fault, STEPS));
            let mut tally = tally.lock().expect("nobody panics here");
            match result {
                Ok(suffered) => {
                    tally.struck += u64::from(suffered.struck);
                    tally.not_opened += u64::from(suffered.not_opened);
                    tally.told += u64::from(suffered.told);
                    tally.stopped += u64::from(suffered.stopped);
                }
                Err(said) => {
                    tally.wrong += 1;
                    println!("{words} at call {nth} ({}): {said}", shape.words);
                    println!("    again: cargo x powercut 1 0 --fault {nth}");
                    std::mem::forget(world);
                }
            }
        });
        let t = tally.into_inner().expect("nobody panics here");
        println!(
            "{words} at each of {} of the first {} calls: struck {}; {} opens refused, {} times a session was told, {} times the instance stopped; wrong {} (goal: 0)",
            calls.len(),
            calls.last().unwrap_or(&0),
            t.struck,
            t.not_opened,
            t.told,
            t.stopped,
            t.wrong
        );
        sound &= t.wrong == 0;
    }
    sound
}

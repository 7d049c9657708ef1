//! What a run stands on: a directory, or a stage where a flash cache wants a device; the database made there, opened, and shut down.

use super::{Options, Plan, Stay};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::database::{Database, Flash, Places};
use crate::factor::{Factor, FileClass};
use crate::stage::{self, Proof, Stage};
use crate::verify;
use engine::Shutdown;
use record::json::json;

/// Raises what the flash cache needs, if anything, and takes it down at the end.
pub(super) fn measure(
    options: &Options,
    plan: &Plan,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    if !stage::is_needed(&options.flash) {
        return measure_on(bench.places(), options, plan, Vec::new(), bench, control);
    }
    stage::possible(&options.flash).map_err(|obstacle| LabError::Target(obstacle.to_string()))?;
    let stage = Stage::raise(&options.flash, &plan.sizes, bench)?;
    let measured = stage
        .proof(&options.flash)
        .and_then(|proofs| measure_on(stage.places(), options, plan, proofs, bench, control));
    let struck = stage.strike(bench);
    measured.and(struck)
}

fn measure_on(
    places: Places,
    options: &Options,
    plan: &Plan,
    mut proofs: Vec<Proof>,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    bench.step(control, "making the database");
    let flash = options.flash.flash().map(|_| Flash {
        file: places.flash_file(),
        bytes: plan.sizes.flash,
        policy: options.flash.flash_policy,
    });
    let database = Database::create(places, &plan.sizes, &options.parameters, options.seed)?;
    let database = database.verifying(options.verify);
    bench.writer.plan(&json!({
        "case": options.case.name(), "configuration": options.name(), "sessions": options.sessions,
        "seconds": options.seconds, "scale": options.scale, "data_bytes": plan.data.0, "cache_bytes": plan.sizes.cache.0,
        "block_bytes": plan.sizes.block.0, "redo_bytes": plan.sizes.redo.0, "redo_groups": plan.sizes.redo_groups,
        "flash": flash.as_ref().map(|flash| json!({ "place": options.flash.level(Factor::Place(FileClass::Flash)),
                                                   "bytes": flash.bytes.0, "policy": flash.policy.name() })),
        "rate": options.rate, "verify": options.verify, "think": format!("{:?}", options.think).to_lowercase(), "parameters": options.parameters,
        "durability": "a commit returns when its redo is durable (O_DSYNC)",
    }))?;
    let parameters: Vec<_> = flash.iter().flat_map(Flash::parameters).collect();
    let instance = database.open_with(&options.configuration, &parameters)?;
    let shown = flash.as_ref().map(|flash| flash.proof(&instance)).transpose();
    let stay = Stay { options, plan, instance: &instance, flash: flash.as_ref() };
    let result = shown.and_then(|shown| {
        proofs.extend(shown);
        stay.visit(&proofs, bench, control)
    });
    if let Err(error) = result {
        // A database that lost its storage cannot be shut down in order; it is removed anyway.
        let _ = instance.shutdown(Shutdown::Abort);
        return Err(error);
    }
    let seen = verify::shut_down(instance, &mut |done, all| {
        bench.step(control, &format!("reading back what was written: {done} of {all} blocks"));
        !control.cancelled()
    })?;
    verify::store(bench, options.case.name(), seen)
}

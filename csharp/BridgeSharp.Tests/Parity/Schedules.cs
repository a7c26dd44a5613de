using BridgeSharp.Optim;

namespace BridgeSharp.Tests.Parity;

/// <summary>The schedulers of the runs, as a user makes them.</summary>
internal static class Schedules
{
    /// <summary>Make a scheduler by the name of its class.</summary>
    /// <param name="name">The name.</param>
    /// <param name="own">The optimizer.</param>
    /// <param name="cyclic">Whether cycles move momentum or betas too.</param>
    /// <param name="version">Whose rules.</param>
    public static Scheduler Make(string name, Optimizer own, bool cyclic, string version) => name switch
    {
        "LambdaLR" => new LambdaLR(own, epoch => 1.0 / (epoch + 1), reference: version),
        "MultiplicativeLR" => new MultiplicativeLR(own, epoch => epoch % 2 == 0 ? 0.5 : 1.75, reference: version),
        "StepLR" => new StepLR(own, 2, gamma: 0.5, reference: version),
        "MultiStepLR" => new MultiStepLR(own, [1, 3, 3, 6], gamma: 0.7, reference: version),
        "ConstantLR" => new ConstantLR(own, factor: 0.25, total_iters: 4, reference: version),
        "LinearLR" => new LinearLR(own, start_factor: 0.1, total_iters: 6, reference: version),
        "ExponentialLR" => new ExponentialLR(own, 0.9, reference: version),
        "PolynomialLR" => new PolynomialLR(own, total_iters: 9, power: 2, reference: version),
        "CosineAnnealingLR" => new CosineAnnealingLR(own, 5, eta_min: 1e-4, reference: version),
        "CosineAnnealingWarmRestarts" => new CosineAnnealingWarmRestarts(own, 2, T_mult: 2, reference: version),
        "OneCycleLR" => new OneCycleLR(own, new[] { 0.02, 0.01 }, total_steps: 12, cycle_momentum: cyclic, reference: version),
        "CyclicLR" => new CyclicLR(own, 1e-3, 1e-2, step_size_up: 3, mode: "triangular2", cycle_momentum: cyclic && (own is SGD || version != "1.13"), reference: version),
        "ReduceLROnPlateau" => new ReduceLROnPlateau(own, factor: 0.5, patience: 0, threshold: 0.02, reference: version),
        "SequentialLR" => new SequentialLR(
            own, [Make("LinearLR", own, cyclic, version), Make("CosineAnnealingWarmRestarts", own, cyclic, version)], [4], reference: version),
        "ChainedScheduler" => new ChainedScheduler([Make("ConstantLR", own, cyclic, version), Make("ExponentialLR", own, cyclic, version)], reference: version),
        _ => throw new ArgumentException($"Schedules: expected the class of a scheduler, got {name}"),
    };
}

using BridgeSharp.Optim;
using Optimizer = TorchSharp.torch.optim.Optimizer;

namespace BridgeSharp;

public static partial class bridge
{
    /// <content>Schedulers as <c>torch.optim.lr_scheduler</c> makes them.</content>
    public static partial class optim
    {
        /// <summary>What TorchSharp has in <c>torch.optim.lr_scheduler</c>, with PyTorch's bits and state.</summary>
        public static class lr_scheduler
        {
            /// <inheritdoc cref="Optim.LambdaLR"/>
            public static LambdaLR LambdaLR(
                Optimizer optimizer, Func<int, double> lr_lambda, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, lr_lambda, last_epoch, reference);

            /// <inheritdoc cref="Optim.LambdaLR"/>
            public static LambdaLR LambdaLR(
                Optimizer optimizer, IEnumerable<Func<int, double>> lr_lambda, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, lr_lambda, last_epoch, reference);

            /// <inheritdoc cref="Optim.MultiplicativeLR"/>
            public static MultiplicativeLR MultiplicativeLR(
                Optimizer optimizer, Func<int, double> lr_lambda, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, lr_lambda, last_epoch, reference);

            /// <inheritdoc cref="Optim.MultiplicativeLR"/>
            public static MultiplicativeLR MultiplicativeLR(
                Optimizer optimizer, IEnumerable<Func<int, double>> lr_lambda, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, lr_lambda, last_epoch, reference);

            /// <inheritdoc cref="Optim.StepLR"/>
            public static StepLR StepLR(
                Optimizer optimizer, int step_size, double gamma = 0.1, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, step_size, gamma, last_epoch, reference);

            /// <inheritdoc cref="Optim.MultiStepLR"/>
            public static MultiStepLR MultiStepLR(
                Optimizer optimizer, IEnumerable<int> milestones, double gamma = 0.1, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, milestones, gamma, last_epoch, reference);

            /// <inheritdoc cref="Optim.ConstantLR"/>
            public static ConstantLR ConstantLR(
                Optimizer optimizer, double factor = 1.0 / 3, int total_iters = 5, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, factor, total_iters, last_epoch, reference);

            /// <inheritdoc cref="Optim.LinearLR"/>
            public static LinearLR LinearLR(
                Optimizer optimizer,
                double start_factor = 1.0 / 3,
                double end_factor = 1,
                int total_iters = 5,
                int last_epoch = -1,
                string reference = "2.10")
                => new(optimizer, start_factor, end_factor, total_iters, last_epoch, reference);

            /// <inheritdoc cref="Optim.ExponentialLR"/>
            public static ExponentialLR ExponentialLR(Optimizer optimizer, double gamma, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, gamma, last_epoch, reference);

            /// <inheritdoc cref="Optim.SequentialLR"/>
            public static SequentialLR SequentialLR(
                Optimizer optimizer,
                IEnumerable<Scheduler> schedulers,
                IEnumerable<int> milestones,
                int last_epoch = -1,
                string reference = "2.10")
                => new(optimizer, schedulers, milestones, last_epoch, reference);

            /// <inheritdoc cref="Optim.CosineAnnealingLR"/>
            public static CosineAnnealingLR CosineAnnealingLR(
                Optimizer optimizer, double T_max, double eta_min = 0, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, T_max, eta_min, last_epoch, reference);

            /// <inheritdoc cref="Optim.ChainedScheduler"/>
            public static ChainedScheduler ChainedScheduler(
                IEnumerable<Scheduler> schedulers, Optimizer? optimizer = null, string reference = "2.10")
                => new(schedulers, optimizer, reference);

            /// <inheritdoc cref="Optim.ReduceLROnPlateau"/>
            public static ReduceLROnPlateau ReduceLROnPlateau(
                Optimizer optimizer,
                string mode = "min",
                double factor = 0.1,
                int patience = 10,
                double threshold = 1e-4,
                string threshold_mode = "rel",
                int cooldown = 0,
                PerGroup? min_lr = null,
                double eps = 1e-8,
                string reference = "2.10")
                => new(optimizer, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps, reference);

            /// <inheritdoc cref="Optim.CyclicLR"/>
            public static CyclicLR CyclicLR(
                Optimizer optimizer,
                PerGroup base_lr,
                PerGroup max_lr,
                int step_size_up = 2000,
                int? step_size_down = null,
                string mode = "triangular",
                double gamma = 1,
                Func<double, double>? scale_fn = null,
                string scale_mode = "cycle",
                bool cycle_momentum = true,
                PerGroup? base_momentum = null,
                PerGroup? max_momentum = null,
                int last_epoch = -1,
                string reference = "2.10")
                => new(optimizer, base_lr, max_lr, step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode, cycle_momentum,
                    base_momentum, max_momentum, last_epoch, reference);

            /// <inheritdoc cref="Optim.CosineAnnealingWarmRestarts"/>
            public static CosineAnnealingWarmRestarts CosineAnnealingWarmRestarts(
                Optimizer optimizer, int T_0, int T_mult = 1, double eta_min = 0, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, T_0, T_mult, eta_min, last_epoch, reference);

            /// <inheritdoc cref="Optim.OneCycleLR"/>
            public static OneCycleLR OneCycleLR(
                Optimizer optimizer,
                PerGroup max_lr,
                int? total_steps = null,
                int? epochs = null,
                int? steps_per_epoch = null,
                double pct_start = 0.3,
                string anneal_strategy = "cos",
                bool cycle_momentum = true,
                PerGroup? base_momentum = null,
                PerGroup? max_momentum = null,
                double div_factor = 25,
                double final_div_factor = 1e4,
                bool three_phase = false,
                int last_epoch = -1,
                string reference = "2.10")
                => new(optimizer, max_lr, total_steps, epochs, steps_per_epoch, pct_start, anneal_strategy, cycle_momentum,
                    base_momentum, max_momentum, div_factor, final_div_factor, three_phase, last_epoch, reference);

            /// <inheritdoc cref="Optim.PolynomialLR"/>
            public static PolynomialLR PolynomialLR(
                Optimizer optimizer, int total_iters = 5, double power = 1, int last_epoch = -1, string reference = "2.10")
                => new(optimizer, total_iters, power, last_epoch, reference);
        }
    }
}

using System.Globalization;
using BridgeSharp.Models.Recipes;
using Spectre.Console;

namespace BridgeSharp.Cli;

/// <summary>Runs a training job and shows its progress.</summary>
internal static class Training
{
    /// <summary>Train, and print the accuracy and the digest of the parameters.</summary>
    /// <param name="options">The job.</param>
    /// <returns>0.</returns>
    public static int Run(Options options)
    {
        using var run = new FashionLeNet(options);
        Say($"LeNet on Fashion-MNIST: {options.replicas} replicas on {options.device}, batch {options.batch}, {options.optimizer}, {options.dtype}, {options.threads} thread(s)");
        if (Console.IsOutputRedirected || !AnsiConsole.Profile.Capabilities.Interactive)
        {
            RunInLines(run);
        }
        else
        {
            RunInPlace(run);
        }

        Say($"accuracy   {run.evaluate():F4}");
        Say($"digest     {run.digest()}");
        return 0;
    }

    private static void RunInPlace(FashionLeNet run)
        => AnsiConsole.Progress()
            .Columns(new TaskDescriptionColumn(), new ProgressBarColumn { Width = 24 }, new PercentageColumn(), new RemainingTimeColumn())
            .Start(context =>
            {
                var task = context.AddTask("starting", maxValue: run.planned_steps);
                while (!task.IsFinished)
                {
                    var step = run.step();
                    task.Description = Markup.Escape(Describe(step));
                    task.Increment(1);
                }
            });

    private static void RunInLines(FashionLeNet run)
    {
        var planned = run.planned_steps;
        var shown = -1L;
        for (var number = 1L; number <= planned; number++)
        {
            var step = run.step();
            if (10 * number / planned > shown)
            {
                shown = 10 * number / planned;
                Say($"step {number} of {planned}: {Describe(step)}");
            }
        }
    }

    private static string Describe(StepResult step)
        => string.Create(CultureInfo.InvariantCulture, $"loss {step.loss:F4}, {step.samples / step.seconds:N0} samples/s");

    private static void Say(FormattableString text) => Console.Out.WriteLine(text.ToString(CultureInfo.InvariantCulture));
}

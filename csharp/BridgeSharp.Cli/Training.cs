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
    /// <param name="saving">Where and when it is saved.</param>
    public static int Run(Options options, Saving saving)
    {
        using var run = new FashionLeNet(options);
        saving.Begin(run);
        Say($"LeNet on Fashion-MNIST: {options.replicas} replicas on {options.device}, batch {options.batch}, {options.optimizer}, {options.dtype}, {options.threads} thread(s)");
        if (Console.IsOutputRedirected || !AnsiConsole.Profile.Capabilities.Interactive)
        {
            RunInLines(run, saving);
        }
        else
        {
            RunInPlace(run, saving);
        }

        Say($"accuracy   {run.evaluate():F4}");
        Say($"digest     {run.digest()}");
        return 0;
    }

    private static void RunInPlace(FashionLeNet run, Saving saving)
        => AnsiConsole.Progress()
            .Columns(new TaskDescriptionColumn(), new ProgressBarColumn { Width = 24 }, new PercentageColumn(), new RemainingTimeColumn())
            .Start(context =>
            {
                var task = context.AddTask("starting", maxValue: run.planned_steps);
                task.Increment(run.trainer.steps);
                while (!task.IsFinished)
                {
                    var step = run.step();
                    saving.After(run);
                    task.Description = Markup.Escape(Describe(step));
                    task.Increment(1);
                }
            });

    private static void RunInLines(FashionLeNet run, Saving saving)
    {
        var planned = run.planned_steps;
        var shown = -1L;
        for (var number = run.trainer.steps + 1; number <= planned; number++)
        {
            var step = run.step();
            saving.After(run);
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

/// <summary>Where and when a run is saved.</summary>
/// <param name="Path">The file; null saves nothing.</param>
/// <param name="Every">After how many steps.</param>
/// <param name="Resume">Whether it goes on from the file, where there is one.</param>
internal sealed record Saving(string? Path, long Every, bool Resume)
{
    /// <summary>Go on from the file, or refuse to replace one that somebody has.</summary>
    public void Begin(FashionLeNet run)
    {
        if (Every < 1)
        {
            throw new ArgumentException($"train: expected --every of at least 1, got {Every}");
        }

        if (Resume && Path is null)
        {
            throw new ArgumentException("train: expected --checkpoint with --resume, got none");
        }

        if (!File.Exists(Path))
        {
            return;
        }

        if (!Resume)
        {
            throw new ArgumentException($"train: expected --resume, as there is {Path}, got none");
        }

        run.load(Path);
    }

    /// <summary>Save after a step, where it is time.</summary>
    public void After(FashionLeNet run)
    {
        if (Path is not null && (run.trainer.steps % Every == 0 || run.trainer.steps == run.planned_steps))
        {
            run.save(Path);
        }
    }
}

using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Moves the learning rates along half a cosine to <c>eta_min</c>, and starts anew from the top.</summary>
/// <remarks>
/// A number of epochs may have a fraction: <c>step(epoch + (batch / batches))</c>.
/// Spec: R27.1, R27.2. Source: torch/optim/lr_scheduler.py
/// </remarks>
public sealed class CosineAnnealingWarmRestarts : Scheduler
{
    private int t0;
    private double tI;
    private int tMult;
    private double etaMin;
    private double tCur;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="T_0">The number of epochs until the first restart.</param>
    /// <param name="T_mult">How many times longer each further run is.</param>
    /// <param name="eta_min">The lowest rate.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public CosineAnnealingWarmRestarts(
        optim.Optimizer optimizer, int T_0, int T_mult = 1, double eta_min = 0, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        if (T_0 <= 0)
        {
            throw new ArgumentException($"Expected positive integer T_0, but got {T_0}");
        }

        if (T_mult < 1)
        {
            throw new ArgumentException($"Expected integer T_mult >= 1, but got {T_mult}");
        }

        (t0, tI, tMult, etaMin, tCur) = (T_0, T_0, T_mult, eta_min, last_epoch);
        Start(last_epoch);
    }

    /// <inheritdoc/>
    public override void step(int? epoch)
    {
        if (epoch is { } given)
        {
            step((double)given);
        }
        else if (last_epoch < 0)
        {
            step(0.0);
        }
        else
        {
            Advance();
            Finish(last_epoch + 1);
        }
    }

    /// <summary>Go to an epoch.</summary>
    /// <param name="epoch">Its number, which may have a fraction.</param>
    /// <exception cref="ArgumentException">A number below 0.</exception>
    public void step(double epoch)
    {
        if (epoch < 0)
        {
            throw new ArgumentException(FormattableString.Invariant($"Expected non-negative epoch, but got {epoch}"));
        }

        if (epoch < t0)
        {
            (tI, tCur) = (t0, epoch);
        }
        else if (tMult == 1)
        {
            tCur = epoch % t0;
        }
        else
        {
            var restarts = (int)(Math.Log((epoch / t0 * (tMult - 1)) + 1) / Math.Log(tMult));
            var scale = Math.Pow(tMult, restarts);
            tCur = epoch - (t0 * (scale - 1) / (tMult - 1));
            tI = t0 * scale;
        }

        Finish(epoch);
    }

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("T_0", ref t0);
        state.Count("T_i", ref tI);
        state.Field("T_mult", ref tMult);
        state.Field("eta_min", ref etaMin);
        state.Count("T_cur", ref tCur);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
    {
        var cosine = 1 + Math.Cos(PythonMath.Divide(Math.PI * tCur, tI));
        return base_lrs.Select(rate => etaMin + ((rate - etaMin) * cosine / 2));
    }

    private void Advance()
    {
        tCur++;
        if (tCur >= tI)
        {
            tCur = old ? tCur - tI : tCur % tI;
            tI *= tMult;
        }
    }

    private void Finish(double epoch)
    {
        last_epoch = (int)Math.Floor(epoch);
        Set([.. get_lr()]);
    }
}

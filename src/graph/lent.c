/* Lanes of foreign threads. */
#include <stoker/lane.h>

#include "base/alloc.h"
#include "graph/steps.h"

/* A lane, and the task that it runs. */
typedef struct lent {
    lane lane; /* first, so that a lane is one */
    task task;
} lent;

uint64_t run_short_groups(stk_run *run)
{
    uint64_t shortage = 0;
    for (uint32_t g = 1; g < run->num_groups; g++)
        if (run->groups[g].waiting <= run->groups[g].coming && group_wants_lane(run, g))
            shortage |= UINT64_C(1) << g;
    return shortage;
}

void run_wake_groups(stk_run *run)
{
    for (uint32_t g = 1; g < run->num_groups; g++) {
        group *p = &run->groups[g];
        if (p->waiting <= p->coming || !group_wants_lane(run, g)) continue;
        p->coming++;
        stk_cond_signal(&p->work);
    }
}

uint64_t lane_shortage(lane *l)
{
    if (!l->grow) return 0;
    const uint64_t shortage = run_short_groups(l->run) & ~l->run->told;
    l->run->told |= shortage;
    return shortage;
}

void lane_tell(lane *l, uint64_t shortage)
{
    for (uint32_t g = 1; shortage && g < STK_MAX_GROUPS; g++)
        if (shortage >> g & 1) l->grow(g, l->grow_ctx);
}

static void destroy_lane(lent *l)
{
    stk_free(l->lane.states);
    stk_free(l->lane.opened);
    stk_free(l->lane.tally);
    stk_free(l);
}

stk_err stk_lane_new(stk_run *run, uint32_t g, stk_lane_grow_fn *grow, void *ctx, stk_lane **out)
{
    *out = NULL;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    if (g == 0 || g >= run->num_groups) return STK_EINVAL;
    lent *l = stk_alloc_zero(1, sizeof(*l));
    if (!l) return STK_ENOMEM;
    l->lane.run = run;
    l->lane.group = g;
    l->lane.grow = grow;
    l->lane.grow_ctx = ctx;
    l->lane.states = stk_alloc_zero(run->num_stages, sizeof(*l->lane.states));
    l->lane.opened = stk_alloc_zero(run->num_stages, sizeof(*l->lane.opened));
    l->lane.tally = stk_alloc_zero(run->num_stages, sizeof(*l->lane.tally));
    stk_err err = l->lane.states && l->lane.opened && l->lane.tally ? STK_OK : STK_ENOMEM;
    run_lock(run);
    if (!err && run_cancelled(run)) err = STK_ECANCELLED;
    if (!err) {
        l->lane.link = run->lent;
        run->lent = &l->lane;
        run->groups[g].inside++;
        run->tells |= grow != NULL;
        run->told &= ~(UINT64_C(1) << g);
        atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
    }
    run_unlock(run);
    if (err)
        destroy_lane(l);
    else
        *out = &l->lane;
    return err;
}

void stk_lane_on_stage(stk_lane *l, stk_lane_stage_fn *fn, void *ctx)
{
    l->on_stage = fn;
    l->on_stage_ctx = ctx;
}

void stk_lane_exclusive(stk_lane *l)
{
    run_lock(l->run);
    l->run->groups[l->group].exclusive = true;
    run_unlock(l->run);
}

stk_err stk_lane_work(stk_lane *l)
{
    stk_run *run = l->run;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    bool news;
    run_lock(run);
    if (!run->watching) (void)run_take_apart(run, false, &news); /* nobody waits, it may be */
    const bool ran = lane_step(run, l, &((lent *)l)->task);
    const bool ended = run_cancelled(run);
    const uint64_t shortage = ran || ended ? 0 : lane_shortage(l);
    run_leave(run);
    lane_tell(l, shortage);
    return ended ? STK_ECANCELLED : ran ? STK_OK : STK_EAGAIN;
}

stk_err stk_lane_wait(stk_lane *l, int64_t timeout)
{
    stk_run *run = l->run;
    if (run->generation != stk_fork_generation()) return STK_EFORK;
    const int64_t deadline = stk_deadline_ns(timeout);
    group *g = &run->groups[l->group];
    stk_err err = STK_OK;
    bool news = false;
    run_lock(run);
    g->waiting++;
    run->told &= ~(UINT64_C(1) << l->group);
    /* Something may have become ready since the lane's last task, while it was not waiting. */
    for (;;) {
        /* Asked before: a queue must not be found at rest first, and not to be so any more then. */
        const int64_t rests = g->timed ? STK_NEVER : group_rests_until(run, l->group);
        if (run_cancelled(run) || g->coming > 0 || group_wants_lane(run, l->group)) break;
        const int64_t due = run_take_apart(run, l->grow, &news);
        if (news) break;
        const bool times = rests != STK_NEVER;
        g->timed |= times;
        run_watch(run, &g->work, due, rests < deadline ? rests : deadline);
        if (times) g->timed = false;
        if (deadline == STK_NEVER || stk_clock_ns() < deadline) continue;
        if (g->coming == 0) err = STK_ETIMEOUT;
        break;
    }
    g->waiting--;
    if (g->coming > 0) g->coming--;
    if (run_cancelled(run)) err = STK_ECANCELLED;
    run_leave(run); /* others may have to watch */
    return err;
}

void stk_lane_free(stk_lane **plane)
{
    lane *l = *plane;
    *plane = NULL;
    if (!l || l->run->generation != stk_fork_generation()) return;
    stk_run *run = l->run;
    run_lock(run);
    lane **at = &run->lent;
    while (*at != l) at = &(*at)->link;
    *at = l->link;
    run->groups[l->group].inside--;
    run->told &= ~(UINT64_C(1) << l->group);
    run_leave(run);
    lane_close(l);
    destroy_lane((lent *)l);
    run_unref(run, 1);
}

uint64_t stk_run_short_groups(stk_run *run)
{
    if (run->generation != stk_fork_generation()) return 0;
    run_lock(run);
    const uint64_t shortage = run_cancelled(run) ? 0 : run_short_groups(run);
    run->told |= shortage;
    run_unlock(run);
    return shortage;
}

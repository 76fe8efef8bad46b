/// Where one way to read a page gives over to another. Answers do not depend on it; tests set it low, so that small
/// data takes every way.
package struct QueryTuning: Sendable {
    /// Entries of the sort key's index that are read before anything is counted.
    package var walkedFirst = 64
    /// Entries of the sort key's index that are read before filters' rows are intersected.
    package var triedEntries = 256
    /// Rows of a filter that are always fewer than any other way would read.
    package var fewRows = 500
    /// Rows that a filter may have for its matches to be sorted where the order is by distance, or there is no order.
    package var gatheredRows = 2_000
    /// Entries that share a sort key and are sorted in memory; a greater group is read through the next sort key.
    package var groupMax = 1_000
    /// When a group's size is looked up.
    package var groupLooked = 64
    /// Locations that a ring should hold: few to sort, enough that the ring is no thin line.
    package var ringMin = 400
    package var ringMax = 4_000
    /// Steps of work that one page may take.
    package var workMax = QueryLimits.workMax
    /// Index entries that one page looks at.
    package var examinedMax = QueryLimits.examinedMax
    /// Bytes of record bodies in a page, give or take one record.
    package var pageBytesMax = QueryLimits.pageBytesMax

    package init() {}

    /// For the calls inside `$current.withValue`.
    @TaskLocal package static var current = QueryTuning()
}

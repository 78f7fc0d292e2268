// The order of search results: Sphinx includes this file in its search (html_search_scorer in conf.py).
const stemsOf = (text) => {
  const stemmer = new Stemmer();
  const words = splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word));
  return [...new Set(words.map((word) => stemmer.stemWord(word)))];
};

// Pages that explain come before pages that list or prove.
const WEIGHTS = [
  [/^(guide|tutorials)\//, 6],
  [/^(rules\/generated\/|start|choose|coming|faq)/, 4],
  [/^examples\//, 2],
  [/^(api\/generated\/|notebooks\/|references|glossary)/, -2],
  [/^(studies|errata|internals|architecture|benchmarks|tested)/, -5],
];

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, anchor, , score]) => {
    const query = stemsOf(new URLSearchParams(location.search).get("q") ?? "");
    const share = (words) => words.filter((word) => query.includes(word)).length / query.length;
    score += WEIGHTS.find(([pages]) => pages.test(page))?.[1] ?? 0;
    // Sections and names are found by their own words; a page by its title and by what readers call its subject.
    if (anchor || !query.length) return score;
    const phrases = (window.PHRASES[page] ?? []).map(stemsOf).filter((words) => words.every((word) => query.includes(word)));
    return score + 10 * share(stemsOf(title)) + 30 * Math.max(0, ...phrases.map(share));
  },
};

// The few calls of d3-cloud that are used here.
declare module 'd3-cloud' {
  interface Word {
    text?: string;
    size?: number;
    x?: number;
    y?: number;
    rotate?: number;
  }
  interface Layout {
    size(size: [number, number]): Layout;
    words(words: Word[]): Layout;
    padding(padding: number): Layout;
    rotate(rotate: number): Layout;
    font(font: string): Layout;
    fontWeight(weight: number): Layout;
    fontSize(size: (word: Word) => number): Layout;
    random(random: () => number): Layout;
    on(event: 'end', done: (words: Word[]) => void): Layout;
    start(): Layout;
    stop(): Layout;
  }
  export default function cloud(): Layout;
}
